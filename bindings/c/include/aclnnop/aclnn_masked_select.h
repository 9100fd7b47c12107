#ifndef OPSCOPE_ACLNN_MASKED_SELECT_H
#define OPSCOPE_ACLNN_MASKED_SELECT_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the elements of self where mask holds, as a row */
ACL_FUNC_VISIBILITY aclnnStatus aclnnMaskedSelectGetWorkspaceSize(const aclTensor *self,
        const aclTensor *mask, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMaskedSelect(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
