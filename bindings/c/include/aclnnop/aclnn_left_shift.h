#ifndef OPSCOPE_ACLNN_LEFT_SHIFT_H
#define OPSCOPE_ACLNN_LEFT_SHIFT_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the bits of self, shiftBits places up */
ACL_FUNC_VISIBILITY aclnnStatus aclnnLeftShiftGetWorkspaceSize(const aclTensor *self,
        const aclTensor *shiftBits, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnLeftShift(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the bits of self, shiftBits places up */
ACL_FUNC_VISIBILITY aclnnStatus aclnnLeftShiftsGetWorkspaceSize(const aclTensor *self,
        const aclScalar *shiftBits, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnLeftShifts(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
