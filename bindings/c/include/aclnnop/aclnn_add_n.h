#ifndef OPSCOPE_ACLNN_ADD_N_H
#define OPSCOPE_ACLNN_ADD_N_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the sum of all tensors */
ACL_FUNC_VISIBILITY aclnnStatus aclnnAddNGetWorkspaceSize(const aclTensorList *tensors,
        aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnAddN(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
