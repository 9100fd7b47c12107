#ifndef OPSCOPE_ACLNN_ELU_H
#define OPSCOPE_ACLNN_ELU_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* scale * self where it is positive, else alpha * scale * (e^(inputScale * self) - 1) */
ACL_FUNC_VISIBILITY aclnnStatus aclnnEluGetWorkspaceSize(const aclTensor *self,
        const aclScalar *alpha, const aclScalar *scale, const aclScalar *inputScale, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnElu(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* scale * self where it is positive, else alpha * scale * (e^(inputScale * self) - 1) */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceEluGetWorkspaceSize(aclTensor *selfRef,
        const aclScalar *alpha, const aclScalar *scale, const aclScalar *inputScale,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceElu(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
