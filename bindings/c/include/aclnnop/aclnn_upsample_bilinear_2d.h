#ifndef OPSCOPE_ACLNN_UPSAMPLE_BILINEAR_2D_H
#define OPSCOPE_ACLNN_UPSAMPLE_BILINEAR_2D_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self with outputSize entries on its last two axes, between their neighbours */
ACL_FUNC_VISIBILITY aclnnStatus aclnnUpsampleBilinear2dGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *outputSize, bool alignCorners, double scalesH, double scalesW,
        aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnUpsampleBilinear2d(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
