"""Run as a program with a repository's name: use the Hub of the environment through the real clients, print JSON."""

import json
import os
import sys

import datasets
from huggingface_hub import (
    CommitOperationAdd,
    CommitOperationDelete,
    DatasetCard,
    HfApi,
    HfFileSystem,
    hf_hub_download,
    snapshot_download,
)
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

repo = sys.argv[1]
api = HfApi()
out = {}
out["whoami"] = api.whoami()["name"]
out["listed"] = [item.id for item in api.list_datasets(author="news")]
out["tags"] = [tag.name for tag in api.list_repo_refs(repo, repo_type="dataset").tags]
out["files"] = sorted(api.list_repo_files(repo, repo_type="dataset", revision="r1"))
train = datasets.load_dataset(repo, split="train", revision="r1")
out["columns"] = train.column_names
out["ids"] = train["id"]
out["size"] = train[0]["images"][0].size
origin = datasets.load_dataset(repo, "provenance", split="train", revision="r1")
out["joined"] = origin["id"] == train["id"]
out["benchmark"] = datasets.load_dataset(repo, "benchmark", split="test", revision="r1")["id"] == train["id"]
out["configs"] = sorted(datasets.get_dataset_config_names(repo))
stream = datasets.load_dataset(repo, "default", split="train", revision="r1", streaming=True)
out["streamed"] = [row["id"] for row in stream]
out["folder"] = sorted(os.listdir(snapshot_download(repo, repo_type="dataset", revision="r1")))
DatasetCard.load(repo).validate()
fs = HfFileSystem()
out["bytes"] = len(fs.open(f"datasets/{repo}/snapshot.json").read())
errors = []
for call in (
    lambda: api.repo_info("news/none", repo_type="dataset"),
    lambda: hf_hub_download(repo, "nope", repo_type="dataset"),
    lambda: api.repo_info(repo, repo_type="dataset", revision="r9"),
):
    try:
        call()
    except (RepositoryNotFoundError, EntryNotFoundError, RevisionNotFoundError) as error:
        errors.append(type(error).__name__)
out["errors"] = errors
# other people's ways of writing: folders, branches, push_to_hub, deletion
api.create_repo("news/other", repo_type="dataset", exist_ok=True)
api.create_repo("news/other", repo_type="dataset", exist_ok=True)
api.upload_file(path_or_fileobj=b"hello", path_in_repo="a/hello.txt", repo_id="news/other", repo_type="dataset")
api.upload_file(path_or_fileobj=os.urandom(30000), path_in_repo="b/x.bin", repo_id="news/other", repo_type="dataset")
api.create_branch("news/other", branch="dev", repo_type="dataset")
head = api.repo_info("news/other", repo_type="dataset").sha
api.create_commit(
    "news/other",
    [CommitOperationDelete("a/hello.txt"), CommitOperationAdd("c.json", b"{}")],
    commit_message="m",
    repo_type="dataset",
    parent_commit=head,
)
try:
    api.create_commit(
        "news/other", [CommitOperationAdd("d", b"1")], commit_message="m", repo_type="dataset", parent_commit=head
    )
except HfHubHTTPError as error:
    out["stale parent"] = error.response.status_code
out["commits"] = len(api.list_repo_commits("news/other", repo_type="dataset"))
datasets.Dataset.from_dict({"a": [1, 2, 3]}).push_to_hub("news/pushed", split="train")
out["pushed"] = datasets.load_dataset("news/pushed", split="train")["a"]
api.delete_repo("news/other", repo_type="dataset")
json.dump(out, sys.stdout, default=list)
