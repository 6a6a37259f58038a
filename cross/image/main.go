// Command image writes the container image of a release from the files of its layers.
//
//	image -arch amd64 -version 1.2.0 -revision COMMIT -out DIR base.tar program.tar directories.tar
//
// DIR becomes an OCI layout of one image with the manifest.json of `docker save` beside it, so that an archive of it is taken by podman,
// skopeo, containerd and every Docker. SOURCE_DATE_EPOCH is the time of everything in it: the same layers give the same bytes.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	var r release
	flag.StringVar(&r.arch, "arch", "", "`architecture` as Go names it")
	flag.StringVar(&r.version, "version", "", "`version` of the program, the image's tag")
	flag.StringVar(&r.revision, "revision", "", "`commit` of the program")
	out := flag.String("out", "", "new `directory` for the layout")
	flag.Parse()
	if err := run(&r, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(r *release, out string, layers []string) error {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	r.created = time.Unix(seconds, 0).UTC()
	if r.arch == "" || r.version == "" || r.revision == "" || out == "" || len(layers) == 0 {
		return fmt.Errorf("all flags and at least one layer must be given")
	}
	image, err := r.image(layers)
	if err != nil {
		return err
	}
	return r.write(out, image)
}
