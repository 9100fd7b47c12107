#ifndef OPSCOPE_ACLNN_RANGE_H
#define OPSCOPE_ACLNN_RANGE_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* start, start + step and so on, up to end with it */
ACL_FUNC_VISIBILITY aclnnStatus aclnnRangeGetWorkspaceSize(const aclScalar *start,
        const aclScalar *end, const aclScalar *step, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnRange(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
