// SPDX-License-Identifier: Apache-2.0
/* Thread-local variables, one per access model, and functions that return them. Built once per library and way of compiling; all names
 * begin with MODELS. */
#include <pthread.h>
#include <stdint.h>

#define PASTE(a, b) a##_##b
#define NAME_OF(a, b) PASTE(a, b)
#define NAME(what) NAME_OF(MODELS, what)
#define EXPORT __attribute__((visibility("default")))

#define VARIABLE(what, model)                                          \
	static __thread void *NAME(what) __attribute__((tls_model(model))); \
	EXPORT void *NAME(get_##what)(void);                           \
	EXPORT void NAME(set_##what)(void *value);                     \
	EXPORT void *NAME(get_##what)(void)                            \
	{                                                              \
		return NAME(what);                                     \
	}                                                              \
	EXPORT void NAME(set_##what)(void *value)                      \
	{                                                              \
		NAME(what) = value;                                    \
	}

#ifdef MODELS_LARGE /* too large for the room that the C library keeps for libraries loaded later */
EXPORT __thread char NAME(filler)[MODELS_LARGE];
#else
EXPORT __thread char NAME(filler)[24];
#endif
#ifdef MODELS_INITIAL
VARIABLE(first, "initial-exec")
VARIABLE(second, "initial-exec")
VARIABLE(third, "initial-exec")
#else
VARIABLE(first, "global-dynamic")
VARIABLE(second, "local-dynamic")
VARIABLE(third, "local-dynamic") /* one of the two is not the first in its block */
#endif

EXPORT pthread_key_t NAME(key);
EXPORT void *NAME(get_key)(void);
EXPORT void *NAME(get_key)(void)
{
	return pthread_getspecific(NAME(key));
}

struct tss { /* as Python has it */
	int is_made;
	pthread_key_t key;
};

EXPORT struct tss NAME(tss);
EXPORT void *NAME(tss_get)(const struct tss *tss);
EXPORT __attribute__((noipa)) void *NAME(tss_get)(const struct tss *tss)
{
	return pthread_getspecific(tss->key);
}

EXPORT void *NAME(get_tss)(void);
EXPORT void *NAME(get_tss)(void)
{
	return NAME(tss).is_made ? NAME(tss_get)(&NAME(tss)) : NULL;
}
