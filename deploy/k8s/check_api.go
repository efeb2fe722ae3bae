package k8s

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
)

// metadataOnly asks for an object without its content: nobody needs the values of a
// Secret to know that it is there.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// exists asks for an object and not for its content.
func (c *client) exists(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	_, err := c.rest.Get().AbsPath(path).SetHeader("Accept", metadataOnly).DoRaw(ctx)
	return err
}

// rehearse lets the server do all but create an object.
func (c *client) rehearse(ctx context.Context, path string, obj runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return c.rest.Post().AbsPath(path).Param("fieldManager", manager).Param("dryRun", "All").Body(obj).Do(ctx).Error()
}
