#ifndef OPSCOPE_ACLNN_MINN_H
#define OPSCOPE_ACLNN_MINN_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the smallest of all tensors, element by element */
ACL_FUNC_VISIBILITY aclnnStatus aclnnMinNGetWorkspaceSize(const aclTensorList *tensors,
        aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMinN(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
