#ifndef OPSCOPE_ACLNN_SPLIT_TENSOR_H
#define OPSCOPE_ACLNN_SPLIT_TENSOR_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* parts of splitSections entries of axis dim; the last one has the rest */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSplitTensorGetWorkspaceSize(const aclTensor *self,
        uint64_t splitSections, int64_t dim, aclTensorList *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSplitTensor(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
