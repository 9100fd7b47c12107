#ifndef OPSCOPE_ACLNN_STD_MEAN_CORRECTION_H
#define OPSCOPE_ACLNN_STD_MEAN_CORRECTION_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* standard deviation and mean over dim */
ACL_FUNC_VISIBILITY aclnnStatus aclnnStdMeanCorrectionGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *dim, int64_t correction, bool keepdim, aclTensor *stdOut,
        aclTensor *meanOut, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnStdMeanCorrection(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
