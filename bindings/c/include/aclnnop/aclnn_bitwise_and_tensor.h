#ifndef OPSCOPE_ACLNN_BITWISE_AND_TENSOR_H
#define OPSCOPE_ACLNN_BITWISE_AND_TENSOR_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the bits that both have */
ACL_FUNC_VISIBILITY aclnnStatus aclnnBitwiseAndTensorGetWorkspaceSize(const aclTensor *self,
        const aclTensor *other, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnBitwiseAndTensor(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the bits that both have */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceBitwiseAndTensorGetWorkspaceSize(aclTensor *selfRef,
        const aclTensor *other, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceBitwiseAndTensor(void *workspace,
        uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
