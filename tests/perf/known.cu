/* known.cu - small kernels whose instructions anyone can count, for tests/perf/known.c.
 *
 * In:  arguments of 8 bytes each.     Out: what known.c computes again.
 */
#ifndef ONCE
#define ONCE /* known.sass has loops that are not unrolled: -DONCE='_Pragma("unroll 1")' */
#endif
typedef long long whole;
typedef unsigned long long natural;

/* A load and a store for each number. */
extern "C" __global__ void __launch_bounds__(128) k_copy(const float *__restrict__ x, float *__restrict__ y, whole n)
{
    whole i = (whole)blockIdx.x * 128 + threadIdx.x;
    if (i < n)
        y[i] = x[i];
}

/* The same, four at once. */
extern "C" __global__ void __launch_bounds__(128) k_four(const float4 *__restrict__ x, float4 *__restrict__ y, whole n)
{
    ONCE
    for (whole i = (whole)blockIdx.x * 128 + threadIdx.x; i < n; i += (whole)gridDim.x * 128)
        y[i] = x[i];
}

/* n multiply-adds of a thread, however the loop is unrolled. */
extern "C" __global__ void __launch_bounds__(128) k_fma(float *y, whole n)
{
    float a = (float)threadIdx.x, b = y[0], c = y[1];
    ONCE
    for (int i = 0; i < (int)n; i++)
        a = fmaf(a, b, c);
    y[threadIdx.x] = a;
}

/* Five shuffles for the sum of a warp, which says where to store. */
extern "C" __global__ void __launch_bounds__(128) k_shuffle(float *y, whole n)
{
    int a = (int)threadIdx.x;
    for (int k = 16; k > 0; k /= 2)
        a += __shfl_xor_sync(0xffffffffu, a, k);
    y[a + (int)threadIdx.x] = 1;
}

/* A store and a load of shared memory with a stride. */
extern "C" __global__ void __launch_bounds__(32) k_banks(float *y, whole stride)
{
    __shared__ float s[1024];
    s[(int)threadIdx.x * (int)stride % 1024] = y[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[((int)threadIdx.x * (int)stride + 1) % 1024];
}

/* n products of tensor cores. */
extern "C" __global__ void __launch_bounds__(32) k_mma(float *y, whole n)
{
    float c[4] = {y[0], y[1], y[2], y[3]};
    unsigned a = threadIdx.x, b = threadIdx.x * 3;
    ONCE
    for (int i = 0; i < (int)n; i++)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a), "r"(b));
    y[threadIdx.x] = c[0] + c[1] + c[2] + c[3];
}

/* n products of a warpgroup, each alone, of registers and shared memory and of shared memory alone. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
extern "C" __global__ void __launch_bounds__(128) k_groups(float *y, whole n)
{
    float c[32];
    unsigned a = threadIdx.x;
    for (int i = 0; i < 32; i++)
        c[i] = y[i];
    #define FOUR(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
    #define SUMS FOUR(0), FOUR(4), FOUR(8), FOUR(12), FOUR(16), FOUR(20), FOUR(24), FOUR(28)
    #define NAMES "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}"
    ONCE
    for (int i = 0; i < (int)n; i++) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " NAMES ", {%32,%32,%32,%32}, %33, 1, 1, 1, 0;"
                     : SUMS : "r"(a), "l"((1ull << 62) + 64) : "memory");
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " NAMES ", %32, %32, 1, 1, 1, 0, 0;"
                     : SUMS : "l"((1ull << 62) + 64) : "memory");
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    }
    float sum = 0;
    for (int i = 0; i < 32; i++)
        sum += c[i];
    y[threadIdx.x] = sum;
}
#endif

/* Each thread has rounds of its own, in two kinds, then all meet; a store for each round. */
extern "C" __global__ void __launch_bounds__(64) k_turns(float *y, whole n)
{
    __shared__ int most;
    int lane = (int)threadIdx.x, rounds = 0;
    if (lane == 0)
        most = (int)n;
    __syncthreads();
    if (lane % 3 == 0)
        ONCE
        for (int i = 0; i < lane % (most + 1); i++, rounds++)
            y[lane * 1000 + rounds] = 1;
    else
        ONCE
        for (int i = lane; i > 0; i /= 2, rounds++)
            y[lane * 1000 + rounds] = 2;
    __syncwarp();
    ONCE
    for (int i = 0; i < most; i++)
        y[lane * 1000 + 100 + i] = 3;
}

/* Integers of all kinds; each result is the place of a store. */
extern "C" __global__ void __launch_bounds__(64) k_integers(char *y, whole a, whole b)
{
    int t = (int)threadIdx.x, x = (int)a, z = (int)b;
    unsigned u = (unsigned)a + threadIdx.x, v = (unsigned)b;
    whole w = a + t, m = b;
    natural p = (natural)a * 3 + threadIdx.x, q = (natural)b;
    natural r[20];
    r[0] = (natural)((x + t) / (z ? z : 1));
    r[1] = (natural)((x - t) % (z ? z : 1));
    r[2] = u / (v ? v : 1);
    r[3] = u % (v ? v : 1);
    r[4] = (natural)(w / (m ? m : 1));
    r[5] = (natural)(w % (m ? m : 1));
    r[6] = p / (q ? q : 1);
    r[7] = p % (q ? q : 1);
    r[8] = (natural)w * (natural)m + (natural)(m >> (t & 63)) - ((natural)w << (t & 31));
    r[9] = (p >> (t & 63)) ^ (q << (t & 63));
    r[10] = (natural)(min(x + t, z) / 4 + max(x - t, z) / 4);
    r[11] = (natural)__popc(u ^ v) * 64 + (natural)__clz((int)u) + __brev(u);
    r[12] = (natural)(w < m) + 2 * (natural)(w == m - t) + 4 * (natural)(p <= q) + 8 * (natural)(u > v) + 16 * (natural)(x + t != z);
    r[13] = __umulhi(u, v) + (natural)__mulhi(x + t, z);
    r[14] = __umul64hi(p, q);
    r[15] = (natural)((x + t) >> (z & 31)) + (u >> (v & 31)) + (u << (v & 31));
    r[16] = __byte_perm(u, v, 0x3715) + (natural)(unsigned char)u + (natural)(whole)(signed char)v;
    r[17] = ((u & v) | (u & ~v & 0xff00ff)) ^ (v | t);
    r[18] = (natural)(t < 40 && (x > z || w > 7) ? abs(x - t) : -abs(z + t));
    r[19] = (natural)(min(p, q) + max((natural)t, q % 1000));
    ONCE
    for (int i = 0; i < 20; i++)
        y[(r[i] ^ r[i] >> 31) % 1000003 * 64 + threadIdx.x + (natural)i * 100000000] = 1;
}
