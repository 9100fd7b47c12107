#ifndef OPSCOPE_ACLNN_ADDR_H
#define OPSCOPE_ACLNN_ADDR_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* betaOptional * self + alphaOptional * the outer product of vec1 and vec2; without them 1 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnAddrGetWorkspaceSize(const aclTensor *self,
        const aclTensor *vec1, const aclTensor *vec2, const aclScalar *betaOptional,
        const aclScalar *alphaOptional, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnAddr(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* betaOptional * self + alphaOptional * the outer product of vec1 and vec2; without them 1 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceAddrGetWorkspaceSize(aclTensor *selfRef,
        const aclTensor *vec1, const aclTensor *vec2, const aclScalar *betaOptional,
        const aclScalar *alphaOptional, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceAddr(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
