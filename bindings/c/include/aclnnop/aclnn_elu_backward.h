#ifndef OPSCOPE_ACLNN_ELU_BACKWARD_H
#define OPSCOPE_ACLNN_ELU_BACKWARD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradOutput * the slope of elu, at its operand or, if isResult is true, at its result */
ACL_FUNC_VISIBILITY aclnnStatus aclnnEluBackwardGetWorkspaceSize(const aclTensor *gradOutput,
        const aclScalar *alpha, const aclScalar *scale, const aclScalar *inputScale, bool isResult,
        const aclTensor *selfOrResult, aclTensor *gradInput, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnEluBackward(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
