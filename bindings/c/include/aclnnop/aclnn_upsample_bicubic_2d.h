#ifndef OPSCOPE_ACLNN_UPSAMPLE_BICUBIC_2D_H
#define OPSCOPE_ACLNN_UPSAMPLE_BICUBIC_2D_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self with outputSize entries on its last two axes, from four neighbours along each by cubic functions */
ACL_FUNC_VISIBILITY aclnnStatus aclnnUpsampleBicubic2dGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *outputSize, bool alignCorners, double scalesH, double scalesW,
        aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnUpsampleBicubic2d(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
