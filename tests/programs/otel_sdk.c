// SPDX-License-Identifier: Apache-2.0
/* What an SDK has to publish a thread's context (OTEP 4947): the variable, and a function that sets it. Compiled for each TLS model. */
#ifdef OWN_NAME /* the code has a name of its own for the variable, so its relocations name no symbol */
__attribute__((visibility("hidden"))) __thread void *otel_sdk_own;
extern __thread void *otel_thread_ctx_v1 __attribute__((alias("otel_sdk_own"), visibility("default")));
#define VARIABLE otel_sdk_own
#else
__attribute__((visibility("default"))) __thread void *otel_thread_ctx_v1;
#define VARIABLE otel_thread_ctx_v1
#endif
__thread char otel_sdk_filler[24]; /* so that the variable is not alone in its block */
void otel_sdk_attach(void *context);

/* The order of writes is that of the program: the thread may be interrupted anywhere. */
__attribute__((visibility("default"), noinline)) void otel_sdk_attach(void *context)
{
	__asm__ volatile("" ::: "memory");
	*(void *volatile *)&VARIABLE = context;
	__asm__ volatile("" ::: "memory");
	*(volatile char *)otel_sdk_filler = 1;
}
