// SPDX-License-Identifier: Apache-2.0
/* Variables of a thread, one per model that they are reached by, and functions that return them: once per library and way of compiling,
 * each with names that begin with MODELS. */
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

#ifdef MODELS_LARGE /* no room for it in what the C library has left for libraries that come later */
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
