#ifndef OPSCOPE_ACLNN_REMAINDER_H
#define OPSCOPE_ACLNN_REMAINDER_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the rest of self / other, with the sign of other */
ACL_FUNC_VISIBILITY aclnnStatus aclnnRemainderTensorTensorGetWorkspaceSize(const aclTensor *self,
        const aclTensor *other, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnRemainderTensorTensor(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the rest of self / other, with the sign of other */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceRemainderTensorTensorGetWorkspaceSize(
        aclTensor *selfRef, const aclTensor *other, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceRemainderTensorTensor(void *workspace,
        uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

/* the rest of self / other, with the sign of other */
ACL_FUNC_VISIBILITY aclnnStatus aclnnRemainderTensorScalarGetWorkspaceSize(const aclTensor *self,
        const aclScalar *other, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnRemainderTensorScalar(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the rest of self / other, with the sign of other */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceRemainderTensorScalarGetWorkspaceSize(
        aclTensor *selfRef, const aclScalar *other, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceRemainderTensorScalar(void *workspace,
        uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

/* the rest of self / other, with the sign of other */
ACL_FUNC_VISIBILITY aclnnStatus aclnnRemainderScalarTensorGetWorkspaceSize(const aclScalar *self,
        const aclTensor *other, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnRemainderScalarTensor(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
