#ifndef OPSCOPE_ACLNN_SPLIT_WITH_SIZE_H
#define OPSCOPE_ACLNN_SPLIT_WITH_SIZE_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* parts of axis dim with as many entries as splitSize says */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSplitWithSizeGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *splitSize, int64_t dim, aclTensorList *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSplitWithSize(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
