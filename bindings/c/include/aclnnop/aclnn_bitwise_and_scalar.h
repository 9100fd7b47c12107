#ifndef OPSCOPE_ACLNN_BITWISE_AND_SCALAR_H
#define OPSCOPE_ACLNN_BITWISE_AND_SCALAR_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the bits that both have */
ACL_FUNC_VISIBILITY aclnnStatus aclnnBitwiseAndScalarGetWorkspaceSize(const aclTensor *self,
        const aclScalar *other, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnBitwiseAndScalar(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the bits that both have */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceBitwiseAndScalarGetWorkspaceSize(aclTensor *selfRef,
        const aclScalar *other, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceBitwiseAndScalar(void *workspace,
        uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
