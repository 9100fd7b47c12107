#ifndef OPSCOPE_ACLNN_INDEX_PUT_IMPL_H
#define OPSCOPE_ACLNN_INDEX_PUT_IMPL_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* selfRef with values, or plus them, at the places of indices */
ACL_FUNC_VISIBILITY aclnnStatus aclnnIndexPutImplGetWorkspaceSize(aclTensor *selfRef,
        const aclTensorList *indices, const aclTensor *values, bool accumulate, bool unsafe,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnIndexPutImpl(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
