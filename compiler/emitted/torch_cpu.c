/* torch_cpu.c - what the processor lacks of the instructions that the kernels were compiled for.
 *
 * It is compiled for any processor of the architecture; build.sh says NEEDS as a list of HAS(word) for the others. */
#define EXPORT __attribute__((visibility("default")))

#define HAS(word)                                                                                                      \
    if (!__builtin_cpu_supports(word))                                                                                 \
        return word;

/* The first of them, or NULL. */
EXPORT const char *vwn_missing(void)
{
#ifdef NEEDS
    __builtin_cpu_init();
    NEEDS
#endif
    return (const char *)0;
}
