#ifndef OPSCOPE_ACLNN_POW_TENSOR_TENSOR_H
#define OPSCOPE_ACLNN_POW_TENSOR_TENSOR_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self to the power of exponent */
ACL_FUNC_VISIBILITY aclnnStatus aclnnPowTensorTensorGetWorkspaceSize(const aclTensor *self,
        const aclTensor *exponent, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnPowTensorTensor(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* self to the power of exponent */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplacePowTensorTensorGetWorkspaceSize(aclTensor *self,
        const aclTensor *exponent, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplacePowTensorTensor(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
