#ifndef OPSCOPE_ACL_DVPP_HI_DVPP_H
#define OPSCOPE_ACL_DVPP_HI_DVPP_H

/* The second interface of media processing. Memory works; whatever would touch a picture or a
   video answers ACL_ERROR_API_NOT_SUPPORT, and aclGetRecentErrMsg says what to use instead. */

#include "acl/dvpp/hi_media_common.h"
#include "acl/dvpp/hi_mpi_pngd.h"
#include "acl/dvpp/hi_mpi_sys.h"
#include "acl/dvpp/hi_mpi_vdec.h"
#include "acl/dvpp/hi_mpi_venc.h"
#include "acl/dvpp/hi_mpi_vpc.h"

#endif /* OPSCOPE_ACL_DVPP_HI_DVPP_H */
