/* How far rounding may lead an algorithm of a convolution from the exact result.  The
 * windows are 3x3, so that each bound is one of the three ways to compute one:
 *
 * Direct (the GEMMs and cuDNN's numbered algorithms): sums of products in any order.
 * Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1, 4.2.
 *
 * FFT: two transforms, products, a sum over planes, the inverse transform.  Each
 * transform of 2^t points has a relative error of t * eta in the 2-norm (Higham,
 * theorem 24.2); by Cauchy-Schwarz and Parseval an element of the result then errs by no
 * more than that share of the products of the planes' 2-norms.
 *
 * Winograd: A'[(G g G') * (B' d B)]A, tiles of 4x4 or 6x6 with the matrices of Lavin and
 * Gray, Fast Algorithms for Convolutional Neural Networks (CVPR 2016); for gradients of
 * weights the transposed ones.  Each stage is a sum as above, of magnitudes that the
 * rows' 2-norms bound: the form of Barabasz et al., Error Analysis and Improving the
 * Accuracy of Winograd Convolution (ACM TOMS 46, 2020).
 *
 * Tensor Cores read TF32 and float16 with 11 bits (half the last of them where a kernel
 * rounds, all of it where it truncates) and truncate as they align what they add: Fasi et
 * al., Numerical behavior of NVIDIA tensor cores (PeerJ CS 7:e330, 2021).  Winograd with
 * rounded operands has no bound of use in the worst case.  Its bound is a probable one:
 * roundings are independent and of mean zero (Higham and Mary, A New Approach to
 * Probabilistic Rounding Error Analysis, SIAM J. Sci. Comput. 41, 2019), inputs random.
 *
 * What cuDNN computes inside is its own: these are bounds of the methods it names. */
#ifndef CUDA_CUDNN_CONV_BOUND_H
#define CUDA_CUDNN_CONV_BOUND_H

#include "cuda/cudnn/convolution.h"

enum conv_method { CONV_DIRECT, CONV_FFT, CONV_WINOGRAD };

struct conv_bound {
    enum conv_method method;
    enum cudnn_arithmetic arithmetic;
    enum dtype dtype; /* of the result */
    enum cudnn_pass pass;
    int64_t terms;         /* products that an element sums, at most */
    int64_t planes;        /* pairs of planes that a plane of the result sums over */
    int64_t height, width; /* of an image's plane, each at most 250 */
};

/* What the bound of an element depends on.  The last two belong to its plane, and are
 * sums over the pairs of planes that are convolved for it. */
struct conv_sums {
    double value;      /* what is right */
    double magnitudes; /* of its products */
    double norms;      /* products of the planes' 2-norms */
    double energy;     /* products of their mean squares */
};

double conv_bound(const struct conv_bound *how, const struct conv_sums *of);

#endif
