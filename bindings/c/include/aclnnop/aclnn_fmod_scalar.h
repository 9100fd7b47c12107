#ifndef OPSCOPE_ACLNN_FMOD_SCALAR_H
#define OPSCOPE_ACLNN_FMOD_SCALAR_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the rest of self / other, with the sign of self */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFmodScalarGetWorkspaceSize(const aclTensor *self,
        const aclScalar *other, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFmodScalar(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the rest of self / other, with the sign of self */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceFmodScalarGetWorkspaceSize(aclTensor *selfRef,
        const aclScalar *other, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceFmodScalar(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
