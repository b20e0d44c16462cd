// SPDX-License-Identifier: MIT OR Apache-2.0
/* The files that the tree would show of each cache: read and written by name. */
#include <linux/debugfs.h>
#include <linux/kobject.h>
#include <linux/proc_fs.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/mm.h>
#include "slab.h"
#include "host.h"

static const struct attribute_group *files;
struct kobject *kernel_kobj;

struct kset *kset_create_and_add(const char *name, const struct kset_uevent_ops *uevent, struct kobject *parent)
{
	return slablab_arena(sizeof(struct kset));
}

void kobject_init(struct kobject *kobj, const struct kobj_type *ktype)
{
	kobj->ktype = ktype;
}

int kobject_init_and_add(struct kobject *kobj, const struct kobj_type *ktype, struct kobject *parent,
			 const char *fmt, ...)
{
	kobj->ktype = ktype;
	return 0;
}

void kobject_put(struct kobject *kobj)
{
}

void kobject_del(struct kobject *kobj)
{
}

int sysfs_create_group(struct kobject *kobj, const struct attribute_group *grp)
{
	files = grp;
	return 0;
}

int sysfs_create_link(struct kobject *kobj, struct kobject *target, const char *name)
{
	return 0;
}

void sysfs_remove_link(struct kobject *kobj, const char *name)
{
}

#ifdef CONFIG_DEBUG_FS
struct dentry *debugfs_create_dir(const char *name, struct dentry *parent)
{
	return NULL;
}

#ifdef debugfs_create_file
struct dentry *debugfs_create_file_full(const char *name, umode_t mode, struct dentry *parent, void *data,
					const void *aux, const struct file_operations *fops)
#else
struct dentry *debugfs_create_file(const char *name, umode_t mode, struct dentry *parent, void *data,
				   const struct file_operations *fops)
#endif
{
	return NULL;
}

#if SLABLAB_RELEASE < 0x060200
struct dentry *debugfs_lookup(const char *name, struct dentry *parent)
{
	return NULL;
}

void debugfs_remove(struct dentry *dentry)
{
}
#else
void debugfs_lookup_and_remove(const char *name, struct dentry *parent)
{
}
#endif
#endif

#ifdef CONFIG_PROC_FS
struct proc_dir_entry *proc_create(const char *name, umode_t mode, struct proc_dir_entry *parent,
				   const struct proc_ops *proc_ops)
{
	return NULL;
}
#endif

#ifdef SLABLAB_SLUB
/* A file is as long as it has to be: a line with 512 CPUs passes a page. */
static size_t room;

int sysfs_emit(char *buf, const char *fmt, ...)
{
	va_list args;
	int length;

	va_start(args, fmt);
	length = vscnprintf(buf, room, fmt, args);
	va_end(args);
	return length;
}

int sysfs_emit_at(char *buf, int at, const char *fmt, ...)
{
	va_list args;
	int length;

	va_start(args, fmt);
	length = vscnprintf(buf + at, room - at, fmt, args);
	va_end(args);
	return length;
}

static struct attribute *file_of(struct kmem_cache *cache, const char *name)
{
	const struct kobj_type *type = cache->kobj.ktype;
	const struct attribute_group *group = files;
	struct attribute *const *file;

	if (type && type->default_groups)
		group = *type->default_groups;
	for (file = group ? group->attrs : NULL; file && *file; file++)
		if (!strcmp((*file)->name, name))
			return *file;
	return NULL;
}

/* Reads a cache's file. Its length; -1 without such a file. */
u64 slablab_show(struct kmem_cache *cache, const char *name, char *out, u64 bytes)
{
	struct attribute *file = file_of(cache, name);

	if (!file || !cache->kobj.ktype)
		return -1;
	room = bytes;
	return cache->kobj.ktype->sysfs_ops->show(&cache->kobj, file, out);
}

u64 slablab_store(struct kmem_cache *cache, const char *name, const char *value)
{
	struct attribute *file = file_of(cache, name);

	if (!file || !cache->kobj.ktype)
		return -1;
	return cache->kobj.ktype->sysfs_ops->store(&cache->kobj, file, value, strlen(value));
}
#endif

const char *kstrdup_const(const char *s, gfp_t gfp)
{
	size_t length = strlen(s) + 1;

	return memcpy(slablab_arena(length), s, length);
}

void kfree_const(const void *x)
{
}
