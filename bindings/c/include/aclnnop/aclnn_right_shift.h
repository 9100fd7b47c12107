#ifndef OPSCOPE_ACLNN_RIGHT_SHIFT_H
#define OPSCOPE_ACLNN_RIGHT_SHIFT_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the bits of input, shiftBits places down */
ACL_FUNC_VISIBILITY aclnnStatus aclnnRightShiftGetWorkspaceSize(const aclTensor *input,
        const aclTensor *shiftBits, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnRightShift(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
