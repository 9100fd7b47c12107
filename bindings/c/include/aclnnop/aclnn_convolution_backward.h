#ifndef OPSCOPE_ACLNN_CONVOLUTION_BACKWARD_H
#define OPSCOPE_ACLNN_CONVOLUTION_BACKWARD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the gradients of aclnnConvolution for input, weight and bias, as outputMask asks for */
ACL_FUNC_VISIBILITY aclnnStatus aclnnConvolutionBackwardGetWorkspaceSize(
        const aclTensor *gradOutput, const aclTensor *input, const aclTensor *weight,
        const aclIntArray *biasSizes, const aclIntArray *stride, const aclIntArray *padding,
        const aclIntArray *dilation, bool transposed, const aclIntArray *outputPadding,
        int32_t groups, const aclBoolArray *outputMask, int8_t cubeMathType, aclTensor *gradInput,
        aclTensor *gradWeight, aclTensor *gradBias, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnConvolutionBackward(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the gradients of aclnnConvTbc; self is that of its output */
ACL_FUNC_VISIBILITY aclnnStatus aclnnConvTbcBackwardGetWorkspaceSize(const aclTensor *self,
        const aclTensor *input, const aclTensor *weight, const aclTensor *bias, int64_t pad,
        int8_t cubeMathType, aclTensor *gradInput, aclTensor *gradWeight, aclTensor *gradBias,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnConvTbcBackward(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
