// A small RTSP server for the tests: rtspserver PORT PIPELINE serves the pipeline at rtsp://127.0.0.1:PORT/test, anew for every client.
// Port 0 takes a free one. Once it listens it prints the port.
#include <gst/rtsp-server/rtsp-server.h>
#include <stdio.h>

int main(int argc, char **argv) {
    gst_init(&argc, &argv);
    if (argc != 3) {
        return 2;
    }
    GstRTSPServer *server = gst_rtsp_server_new();
    gst_rtsp_server_set_address(server, "127.0.0.1");
    gst_rtsp_server_set_service(server, argv[1]);
    GstRTSPMediaFactory *factory = gst_rtsp_media_factory_new();
    gst_rtsp_media_factory_set_launch(factory, argv[2]);
    gst_rtsp_media_factory_set_protocols(factory, GST_RTSP_LOWER_TRANS_TCP);
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
