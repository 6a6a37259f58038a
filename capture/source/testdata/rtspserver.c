// A small RTSP server for the tests: rtspserver PORT PIPELINE [basic|digest USER PASSWORD] serves the pipeline at
// rtsp://127.0.0.1:PORT/test, anew for every client, to everybody or to that user. Port 0 takes a free one. Once it listens it prints the
// port.
#include <gst/rtsp-server/rtsp-server.h>
#include <stdio.h>
#include <string.h>

// restrict_to lets one user in.
static void restrict_to(GstRTSPServer *server, GstRTSPMediaFactory *factory, const char *scheme, const char *user, const char *password) {
    GstRTSPAuth *auth = gst_rtsp_auth_new();
    GstRTSPToken *token = gst_rtsp_token_new(GST_RTSP_TOKEN_MEDIA_FACTORY_ROLE, G_TYPE_STRING, "viewer", NULL);
    if (strcmp(scheme, "digest") == 0) {
        gst_rtsp_auth_set_supported_methods(auth, GST_RTSP_AUTH_DIGEST);
        gst_rtsp_auth_add_digest(auth, user, password, token);
    } else {
        char *basic = gst_rtsp_auth_make_basic(user, password);
        gst_rtsp_auth_add_basic(auth, basic, token);
        g_free(basic);
    }
    gst_rtsp_token_unref(token);
    gst_rtsp_media_factory_add_role(factory, "viewer", GST_RTSP_PERM_MEDIA_FACTORY_ACCESS, G_TYPE_BOOLEAN, TRUE,
                                    GST_RTSP_PERM_MEDIA_FACTORY_CONSTRUCT, G_TYPE_BOOLEAN, TRUE, NULL);
    gst_rtsp_server_set_auth(server, auth);
    g_object_unref(auth);
}

int main(int argc, char **argv) {
    gst_init(&argc, &argv);
    if (argc != 3 && argc != 6) {
        return 2;
    }
    GstRTSPServer *server = gst_rtsp_server_new();
    gst_rtsp_server_set_address(server, "127.0.0.1");
    gst_rtsp_server_set_service(server, argv[1]);
    GstRTSPMediaFactory *factory = gst_rtsp_media_factory_new();
    gst_rtsp_media_factory_set_launch(factory, argv[2]);
    gst_rtsp_media_factory_set_protocols(factory, GST_RTSP_LOWER_TRANS_TCP);
    if (argc == 6) {
        restrict_to(server, factory, argv[3], argv[4], argv[5]);
    }
    GstRTSPMountPoints *mounts = gst_rtsp_server_get_mount_points(server);
    gst_rtsp_mount_points_add_factory(mounts, "/test", factory);
    g_object_unref(mounts);
    if (gst_rtsp_server_attach(server, NULL) == 0) {
        return 1;
    }
    printf("%d\n", gst_rtsp_server_get_bound_port(server));
    fflush(stdout);
    g_main_loop_run(g_main_loop_new(NULL, FALSE));
    return 0;
}
