/* product.h - products of matrices on the CPU, as the fake cuBLASLt runs them. */
#ifndef FAKE_CUDA_PRODUCT_H
#define FAKE_CUDA_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

/* Element (r, c) of matrix b lies at at + b step + r row + c column, in elements. */
typedef struct ProductMatrix {
    char *at;
    int type; /* R_32F, R_16F, R_16BF */
    int64_t row, column, step;
} ProductMatrix;

/* The ways to sum over k, whose results differ in their last bits. */
enum { SUM_UP, SUM_DOWN, SUM_HALVES, SUMS };

typedef struct Product {
    int64_t m, n, k, batch;
    ProductMatrix a, b, c, d; /* a: m x k, b: k x n, transposed as they are to be */
    float alpha, beta;        /* with beta = 0, c is not read */
    int sum;
    bool tf32; /* operands of float32 are rounded to 10 bits behind the point */
} Product;

/* d = alpha a b + beta c; sums in float32, each result rounded once. */
void product_run(const Product *p);
bool product_is_zero(const Product *p); /* every number of d, when it has been run */

#endif
