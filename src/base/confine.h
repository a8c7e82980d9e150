/* SPDX-License-Identifier: Apache-2.0 */
/* confine: gives up, for good, what the process no longer needs (landlock(7)). Open descriptors stay usable. An older kernel restricts
 * less: files since 5.13, TCP since 6.7, signals since 6.12. */
#pragma once
#include <stdint.h>

/* Restricts writing and outside contact. Files are created, changed and removed only where the outputs are. TCP connections are neither
 * opened nor accepted. Other processes are neither traced nor signalled. Executed programs gain no rights. `outputs`: paths of reports ("-"
 * and open files need not be listed). */
void confine_writing(const char *const *outputs, uint32_t nr_outputs);
/* Restricts reading: no file but the inputs is opened for reading, no directory listed, no program started. */
void confine_reading(const char *const *inputs, uint32_t nr_inputs);
