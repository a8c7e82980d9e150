// SPDX-License-Identifier: Apache-2.0
/* A library with the functions that identify greenlet's module. It never runs. */
#define EXPORTED __attribute__((noipa, visibility("default")))

EXPORTED int _ZN8greenlet8Greenlet13g_switchstackEv(long off);
EXPORTED int _ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object(long off);
EXPORTED int _ZN8greenlet12UserGreenlet13g_initialstubEPv(long off);
EXPORTED int PyInit__greenlet(void);

static __attribute__((noipa)) int slp_switch(long off)
{
	__asm__ volatile("add %0, %%rsp\n\tadd %0, %%rbp" : : "r"(off) : "memory");
	return off > 0;
}

int _ZN8greenlet8Greenlet13g_switchstackEv(long off)
{
	return slp_switch(off) + 1;
}

int _ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object(long off)
{
	return _ZN8greenlet8Greenlet13g_switchstackEv(off) + 1;
}

int _ZN8greenlet12UserGreenlet13g_initialstubEPv(long off)
{
	return _ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object(off) + 1;
}

int PyInit__greenlet(void)
{
	return _ZN8greenlet12UserGreenlet13g_initialstubEPv(1) + 1;
}
