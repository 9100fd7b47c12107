#ifndef OPSCOPE_ACLNN_CONVOLUTION_H
#define OPSCOPE_ACLNN_CONVOLUTION_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the convolution of input with weight over one to three axes, plus bias; transposed is its gradient */
ACL_FUNC_VISIBILITY aclnnStatus aclnnConvolutionGetWorkspaceSize(const aclTensor *input,
        const aclTensor *weight, const aclTensor *bias, const aclIntArray *stride,
        const aclIntArray *padding, const aclIntArray *dilation, bool transposed,
        const aclIntArray *outputPadding, int64_t groups, aclTensor *output, int8_t cubeMathType,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnConvolution(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the convolution over the first axis of self, behind which are samples and channels, with weight of taps, channels and results */
ACL_FUNC_VISIBILITY aclnnStatus aclnnConvTbcGetWorkspaceSize(const aclTensor *self,
        const aclTensor *weight, const aclTensor *bias, int64_t pad, aclTensor *output,
        int8_t cubeMathType, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnConvTbc(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the convolution of each channel of self with kernels of its own */
ACL_FUNC_VISIBILITY aclnnStatus aclnnConvDepthwise2dGetWorkspaceSize(const aclTensor *self,
        const aclTensor *weight, const aclIntArray *kernelSize, const aclTensor *bias,
        const aclIntArray *stride, const aclIntArray *padding, const aclIntArray *dilation,
        aclTensor *out, int8_t cubeMathType, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnConvDepthwise2d(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
