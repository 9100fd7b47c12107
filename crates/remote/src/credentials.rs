//! Where credentials come from: the environment, and the files of the services' tools.
//!
//! The metadata service of a cloud's machines is asked only if `OPSCOPE_INSTANCE_METADATA` is `1`:
//! on other machines its address does not answer, and a program that reads a dump should not wait
//! for it, nor contact a server that the user did not name.

use std::env;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use url::Url;

use crate::aws_files::AwsProfile;
use crate::failure::masked;
use crate::http_client::Connector;
use crate::settings::{NamedStore, options, retry, wrong};

/// The variable that enables the metadata service.
const METADATA_VARIABLE: &str = "OPSCOPE_INSTANCE_METADATA";

fn is_set(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty())
}

fn is_true(name: &str) -> bool {
    env::var(name).is_ok_and(|value| matches!(&*value.to_ascii_lowercase(), "1" | "true"))
}

/// No credentials were found in the places in `tried`.
fn missing(place: &str, tried: &str, anonymous: &str) -> io::Error {
    let reason = format!(
        "no credentials for `{place}`: tried {tried}; {METADATA_VARIABLE}=1 asks the machine's \
         metadata service, {anonymous}=true reads what is public"
    );
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}

/// Whether the endpoint has no TLS: naming one explicitly allows it.
///
/// # Errors
/// If it is not the URL of a server, which would make the client panic.
fn allows_http(endpoint: Option<&str>) -> io::Result<bool> {
    let Some(endpoint) = endpoint else {
        return Ok(false);
    };
    match Url::parse(endpoint) {
        Ok(url) if url.has_host() && url.scheme() == "https" => Ok(false),
        Ok(url) if url.has_host() && url.scheme() == "http" => Ok(true),
        _ => {
            let endpoint = masked(endpoint);
            let reason = format!("expected the URL of a server as endpoint, found `{endpoint}`");
            Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
        }
    }
}

pub(crate) fn s3(bucket: &str) -> io::Result<NamedStore> {
    let profile = AwsProfile::read()?;
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    let known = |builder: &AmazonS3Builder, key| builder.get_config_value(&key);
    let anonymous = "AWS_SKIP_SIGNATURE";
    // The order is that of AWS's tools: the environment, the files, a web identity, the container;
    // the metadata service follows only if enabled.
    let login = if is_true(anonymous) {
        "requests without a signature".to_owned()
    } else if known(&builder, AmazonS3ConfigKey::AccessKeyId).is_some() {
        "the key in AWS_ACCESS_KEY_ID".to_owned()
    } else if let Some((id, secret)) = profile.key() {
        builder = builder
            .with_access_key_id(id)
            .with_secret_access_key(secret);
        if let Some(token) = profile.get("aws_session_token") {
            builder = builder.with_token(token);
        }
        format!("the key of the profile `{}`", profile.name)
    } else if is_set("AWS_WEB_IDENTITY_TOKEN_FILE") && is_set("AWS_ROLE_ARN") {
        "the role in AWS_ROLE_ARN".to_owned()
    } else if is_set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
        || is_set("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    {
        "the container's role".to_owned()
    } else if is_true(METADATA_VARIABLE) {
        "the machine's role".to_owned()
    } else {
        let files = profile.files_in_words();
        let tried = format!(
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the profile `{}` in {files}, a web \
             identity and a container's role",
            profile.name
        );
        return Err(missing(bucket, &tried, anonymous));
    };
    // The client does not read AWS's files, so the profile only fills gaps.
    if known(&builder, AmazonS3ConfigKey::Region).is_none()
        && let Some(region) = profile.get("region")
    {
        builder = builder.with_region(region);
    }
    let specific = env::var("AWS_ENDPOINT_URL_S3").ok();
    let endpoint = specific
        .or_else(|| known(&builder, AmazonS3ConfigKey::Endpoint))
        .or_else(|| profile.get("endpoint_url").map(str::to_owned))
        .filter(|endpoint| !endpoint.is_empty());
    let allows_http = allows_http(endpoint.as_deref())? || is_true("AWS_ALLOW_HTTP");
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    let builder = builder
        .with_http_connector(Connector)
        .with_client_options(options(allows_http))
        .with_retry(retry());
    let store = builder.build().map_err(|error| wrong(bucket, &error))?;
    Ok((Arc::new(store), login))
}

pub(crate) fn gcs(bucket: &str) -> io::Result<NamedStore> {
    let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
    let anonymous = "GOOGLE_SKIP_SIGNATURE";
    let own = env::var_os("HOME").map(|home| {
        PathBuf::from(home).join(".config/gcloud/application_default_credentials.json")
    });
    let has = |key| builder.get_config_value(&key).is_some();
    let login = if is_true(anonymous) {
        "requests without a signature"
    } else if has(GoogleConfigKey::ServiceAccount) || has(GoogleConfigKey::ServiceAccountKey) {
        "the service account of the environment"
    } else if has(GoogleConfigKey::ApplicationCredentials) {
        "the file in GOOGLE_APPLICATION_CREDENTIALS"
    } else if own.is_some_and(|file| file.is_file()) {
        "gcloud's application default credentials"
    } else if is_true(METADATA_VARIABLE) {
        "the machine's service account"
    } else {
        let tried = "GOOGLE_SERVICE_ACCOUNT, GOOGLE_SERVICE_ACCOUNT_KEY, \
                     GOOGLE_APPLICATION_CREDENTIALS and gcloud's application default credentials";
        return Err(missing(bucket, tried, anonymous));
    };
    let endpoint = builder.get_config_value(&GoogleConfigKey::BaseUrl);
    let allows_http = allows_http(endpoint.as_deref())?;
    let builder = builder
        .with_http_connector(Connector)
        .with_client_options(options(allows_http))
        .with_retry(retry());
    let store = builder.build().map_err(|error| wrong(bucket, &error))?;
    Ok((Arc::new(store), login.to_owned()))
}

pub(crate) fn azure(container: &str) -> io::Result<NamedStore> {
    let mut builder = MicrosoftAzureBuilder::from_env().with_container_name(container);
    // Names of Azure's tools, in addition to those of the client.
    for (name, key) in [
        ("AZURE_STORAGE_ACCOUNT", AzureConfigKey::AccountName),
        ("AZURE_STORAGE_KEY", AzureConfigKey::AccessKey),
        ("AZURE_STORAGE_SAS_TOKEN", AzureConfigKey::SasKey),
    ] {
        if let Ok(value) = env::var(name)
            && builder.get_config_value(&key).is_none()
        {
            builder = builder.with_config(key, value);
        }
    }
    let anonymous = "AZURE_SKIP_SIGNATURE";
    let has = |key| builder.get_config_value(&key).is_some();
    let login = if is_true(anonymous) {
        "requests without a signature"
    } else if has(AzureConfigKey::AccessKey) {
        "the account's key"
    } else if has(AzureConfigKey::SasKey) {
        "the shared access signature of the environment"
    } else if has(AzureConfigKey::ClientSecret) || has(AzureConfigKey::FederatedTokenFile) {
        "the application in AZURE_CLIENT_ID"
    } else if has(AzureConfigKey::Token) {
        "the token of the environment"
    } else if is_true("AZURE_USE_AZURE_CLI") || is_true("AZURE_STORAGE_USE_EMULATOR") {
        "the login of Azure's tools"
    } else if is_true(METADATA_VARIABLE) {
        "the machine's identity"
    } else {
        let tried = "AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, AZURE_CLIENT_ID with \
                     AZURE_CLIENT_SECRET and AZURE_TENANT_ID, AZURE_FEDERATED_TOKEN_FILE and \
                     AZURE_USE_AZURE_CLI=true";
        return Err(missing(container, tried, anonymous));
    };
    let endpoint = builder.get_config_value(&AzureConfigKey::Endpoint);
    let allows_http = allows_http(endpoint.as_deref())? || is_true("AZURE_STORAGE_USE_EMULATOR");
    let builder = builder
        .with_http_connector(Connector)
        .with_client_options(options(allows_http))
        .with_retry(retry());
    let store = builder.build().map_err(|error| wrong(container, &error))?;
    Ok((Arc::new(store), login.to_owned()))
}
