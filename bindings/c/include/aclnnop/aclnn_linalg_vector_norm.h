#ifndef OPSCOPE_ACLNN_LINALG_VECTOR_NORM_H
#define OPSCOPE_ACLNN_LINALG_VECTOR_NORM_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the norm ord along dims, or of all elements */
ACL_FUNC_VISIBILITY aclnnStatus aclnnLinalgVectorNormGetWorkspaceSize(const aclTensor *self,
        const aclScalar *ord, const aclIntArray *dims, bool keepDims, aclDataType dtype,
        aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnLinalgVectorNorm(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
