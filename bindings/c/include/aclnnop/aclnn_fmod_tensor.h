#ifndef OPSCOPE_ACLNN_FMOD_TENSOR_H
#define OPSCOPE_ACLNN_FMOD_TENSOR_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the rest of self / other, with the sign of self */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFmodTensorGetWorkspaceSize(const aclTensor *self,
        const aclTensor *other, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFmodTensor(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the rest of self / other, with the sign of self */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceFmodTensorGetWorkspaceSize(aclTensor *selfRef,
        const aclTensor *other, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceFmodTensor(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
