#ifndef OPSCOPE_ACLNN_GE_SCALAR_H
#define OPSCOPE_ACLNN_GE_SCALAR_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self >= other */
ACL_FUNC_VISIBILITY aclnnStatus aclnnGeScalarGetWorkspaceSize(const aclTensor *self,
        const aclScalar *other, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnGeScalar(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* self >= other */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceGeScalarGetWorkspaceSize(aclTensor *selfRef,
        const aclScalar *other, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceGeScalar(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
