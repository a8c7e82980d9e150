/* SPDX-License-Identifier: Apache-2.0 */
/* made_up_profile: synthetic profiles, for tests of readers and writers. NULL: no memory. */
#pragma once
#include "model/profile.h"

/* Small, with one of everything: merges, missing sides, marks, hostile names. */
struct profile *made_up_profile(void);
/* A machine's worth: about `nr_stacks` different stacks of several programs. The same number gives the same profile. */
struct profile *made_up_big_profile(uint32_t nr_stacks);
/* Ten seconds of samples with times, of about as many programs and threads; one program works in two of them only. */
struct profile *made_up_timed_profile(uint32_t nr_samples);
/* Two profiles of the same total: values "before" and "after". One program doubled, one has ended, reads in the kernel halved. */
struct profile *made_up_diff_profile(uint32_t nr_stacks);
/* Two threads of one process and one of another, each sample with its time, some with labels; one thread has a pause. */
struct profile *made_up_threads_profile(void);
/* Four values, of which the third is shown; labels; no threads, no times. Like another tool's heap profile. */
struct profile *made_up_heap_profile(void);
/* Waits: count, time, shortest, longest. Marks say what was waited for. Histograms of all, of a process, of each stack, and one of
 * another scale. */
struct profile *made_up_waits_profile(void);
/* All time of five threads of one process, by its states; three of them wait throughout. */
struct profile *made_up_wall_profile(void);
