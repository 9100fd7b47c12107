#ifndef OPSCOPE_ACLNN_LE_TENSOR_H
#define OPSCOPE_ACLNN_LE_TENSOR_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self <= other */
ACL_FUNC_VISIBILITY aclnnStatus aclnnLeTensorGetWorkspaceSize(const aclTensor *self,
        const aclTensor *other, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnLeTensor(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* self <= other */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceLeTensorGetWorkspaceSize(aclTensor *selfRef,
        const aclTensor *other, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceLeTensor(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
