#ifndef OPSCOPE_ACLNN_EQ_SCALAR_H
#define OPSCOPE_ACLNN_EQ_SCALAR_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self == other */
ACL_FUNC_VISIBILITY aclnnStatus aclnnEqScalarGetWorkspaceSize(const aclTensor *self,
        const aclScalar *other, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnEqScalar(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* self == other */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceEqScalarGetWorkspaceSize(aclTensor *selfRef,
        const aclScalar *other, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceEqScalar(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
