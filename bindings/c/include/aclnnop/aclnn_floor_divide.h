#ifndef OPSCOPE_ACLNN_FLOOR_DIVIDE_H
#define OPSCOPE_ACLNN_FLOOR_DIVIDE_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self / other, rounded down */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFloorDivideGetWorkspaceSize(const aclTensor *self,
        const aclTensor *other, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFloorDivide(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* self / other, rounded down */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceFloorDivideGetWorkspaceSize(aclTensor *selfRef,
        const aclTensor *other, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceFloorDivide(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* self / other, rounded down */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFloorDividesGetWorkspaceSize(const aclTensor *self,
        const aclScalar *other, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFloorDivides(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* self / other, rounded down */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceFloorDividesGetWorkspaceSize(aclTensor *selfRef,
        const aclScalar *other, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceFloorDivides(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
