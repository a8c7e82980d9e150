// SPDX-License-Identifier: Apache-2.0
#include "session/session_profile.h"

#include "session/session.h"

const struct profile *session_profile(const struct sonde_session *session)
{
	return session->profile;
}
