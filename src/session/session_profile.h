/* SPDX-License-Identifier: Apache-2.0 */
/* session_profile: a session's profile, for the rest of the library. */
#pragma once
#include <sonde/sonde.h>

#include "model/profile.h"

/* What the session has recorded, or the last window of it; NULL: nothing yet. Borrowed until sonde_session_free. */
const struct profile *session_profile(const struct sonde_session *session);
