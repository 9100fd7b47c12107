#ifndef OPSCOPE_ACLNN_MASKED_SCATTER_H
#define OPSCOPE_ACLNN_MASKED_SCATTER_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the elements of source, in order, where mask holds */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceMaskedScatterGetWorkspaceSize(aclTensor *selfRef,
        const aclTensor *mask, const aclTensor *source, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceMaskedScatter(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
