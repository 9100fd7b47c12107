#ifndef OPSCOPE_ACLNN_ONE_HOT_H
#define OPSCOPE_ACLNN_ONE_HOT_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* onValue where the new axis counts to the number in self, offValue elsewhere */
ACL_FUNC_VISIBILITY aclnnStatus aclnnOneHotGetWorkspaceSize(const aclTensor *self,
        int32_t numClasses, const aclTensor *onValue, const aclTensor *offValue, int64_t axis,
        aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnOneHot(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
