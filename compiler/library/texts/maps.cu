/* ---- copies by tensor maps, of sm_90a: one thread asks, and a barrier in shared memory counts the bytes that come. ---- */
#ifndef VWN_EMU
/* A tensor in memory as the driver describes it to the hardware that copies (CUtensorMap): an argument of a launch. */
struct __align__(128) vwn_map {
    uint64_t word[16];
};
/* A barrier in shared memory (mbarrier): a phase of it is over when as many threads have arrived as it was made for, and as many bytes
 * have come as were expected. Copies know it behind vwn_proxy_fence() of the thread that makes it, other threads behind a barrier of the
 * block. */
FN void vwn_mbarrier_make(uint64_t *b, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(vwn_shared_address(b)), "r"(arrivals) : "memory");
}
/* This thread arrives; and so many bytes more are expected. */
FN void vwn_mbarrier_arrive(uint64_t *b)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(vwn_shared_address(b)) : "memory");
}
FN void vwn_mbarrier_expect(uint64_t *b, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(vwn_shared_address(b)), "r"(bytes) : "memory");
}
/* Until a phase of this parity is over. Phases have parities 0, 1, 0, ...; what was before the first one is over. */
FN void vwn_mbarrier_wait(uint64_t *b, uint32_t parity)
{
    asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again;}" ::"r"(vwn_shared_address(b)),
                 "r"(parity) : "memory");
}
/* This thread begins to copy a box of a map to lines of 128 bytes with their 16-byte pieces in turned order (chunks.cu): from column c of
 * head h of row r of sequence s on; zeros for what is not there. The barrier counts its bytes. */
FN void vwn_map_copy(void *to, const vwn_map &map, int c, int h, int r, int s, uint64_t *b)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(
                     vwn_shared_address(to)), "l"(&map), "r"(c), "r"(h), "r"(r), "r"(s), "r"(vwn_shared_address(b)) : "memory");
}
/* A group of four warps gives registers back until each thread has N, or takes some that other groups gave back. */
template <int N> FN void vwn_group_gives_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> FN void vwn_group_takes_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }
#else /* twins of the emulator */
typedef emu_map vwn_map;
FN void vwn_mbarrier_make(uint64_t *b, int arrivals) { emu_mbarrier_make(b, arrivals); }
FN void vwn_mbarrier_arrive(uint64_t *b) { emu_mbarrier_arrive(b, 0); }
FN void vwn_mbarrier_expect(uint64_t *b, int bytes) { emu_mbarrier_arrive(b, bytes); }
FN void vwn_mbarrier_wait(uint64_t *b, uint32_t parity) { emu_mbarrier_wait(b, parity); }
FN void vwn_map_copy(void *to, const vwn_map &map, int c, int h, int r, int s, uint64_t *b)
{
    const int at[] = {c, h, r, s};
    emu_map_copy(to, map, at, 4, b);
}
template <int N> FN void vwn_group_gives_registers() { emu_group_has_registers(N, false); }
template <int N> FN void vwn_group_takes_registers() { emu_group_has_registers(N, true); }
#endif
/* A tile of ROWS rows and D columns, in panels (warpgroups.cu), by a map whose boxes have ROWS rows and 64 columns: a phase of the
 * barrier, for which one thread arrives. */
template <int ROWS, int D, class E> FN void vwn_map_tile(E *tile, const vwn_map &map, int head, int row, int sequence, uint64_t *b)
{
    vwn_mbarrier_expect(b, ROWS * D * (int)sizeof(E));
    #pragma unroll
    for (int c = 0; c < D; c += 64)
        vwn_map_copy(tile + c * ROWS, map, c, head, row, sequence, b);
}
/* Places that are used in turn, and which round of them this is, as the parity of a phase. */
template <int PLACES> struct vwn_turn {
    int place;
    uint32_t round;
};
template <int PLACES> FN vwn_turn<PLACES> vwn_next(vwn_turn<PLACES> t)
{
    return t.place == PLACES - 1 ? vwn_turn<PLACES>{0, t.round ^ 1} : vwn_turn<PLACES>{t.place + 1, t.round};
}
