package capture

import (
	"gocv.io/x/gocv"
)

// openRTSP prefers GStreamer, which hands out a picture as soon as it is decoded; FFmpeg's frame threads hold back one picture a core.
func openRTSP(u URI, options Options) (Source, error) {
	jetson := hasPlugin(pluginDecoder)
	able := gocv.VideoRegistry.HasBackend(gocv.VideoCaptureGstreamer) && hasPlugin(pluginRTSP) && (jetson || hasPlugin(pluginLibav))
	if options.Decoder == GStreamer || options.Decoder == "" && able {
		v, err := openGStreamer(u, rtspPipeline(u.Address, options.Every, jetson), options)
		if err != nil {
			return nil, withHint(err, streamHint)
		}
		return v, nil
	}
	v, err := openVideo(u, u.Address, gocv.VideoCaptureFFmpeg, options)
	if err != nil {
		return nil, withHint(err, streamHint)
	}
	return v, nil
}

const streamHint = "check address, user name and password, and that the stream plays elsewhere"
