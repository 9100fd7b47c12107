/* Logs lines whose arguments come in registers of both kinds and on the stack. */
#include "acl/acl.h"

int main(void)
{
    ACL_APP_LOG(ACL_ERROR, "no arguments");
    ACL_APP_LOG(ACL_ERROR, "words %d %s %ld %u %c %d %d", 1, "two", 3L, 4U, '5', 6, 7);
    ACL_APP_LOG(ACL_ERROR, "vectors %.1f %.1f %.1f %.1f %.1f %.1f %.1f %.1f %.1f %.1f", 1.5, 2.5, 3.5, 4.5, 5.5, 6.5,
                7.5, 8.5, 9.5, 10.5);
    ACL_APP_LOG(ACL_ERROR, "both %d %.2f %s %.2f %zu", 1, 2.25, "three", 4.75, (size_t)5);
    ACL_APP_LOG(ACL_ERROR, "%5000d", 1);
    ACL_APP_LOG(ACL_INFO, "too quiet");
    aclAppLog(ACL_WARNING, "f", "g", 1, "too quiet as well");
    return 0;
}
