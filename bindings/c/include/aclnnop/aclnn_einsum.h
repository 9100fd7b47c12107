#ifndef OPSCOPE_ACLNN_EINSUM_H
#define OPSCOPE_ACLNN_EINSUM_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the sum of products that equation describes */
ACL_FUNC_VISIBILITY aclnnStatus aclnnEinsumGetWorkspaceSize(const aclTensorList *tensors,
        const char *equation, aclTensor *output, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnEinsum(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
