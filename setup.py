import setuptools

# The flagfiles lie at the top of the repository and travel in the wheel as
# data of the package, where alim_keras.app.cli finds them.
setuptools.setup(
    packages=[
        *setuptools.find_namespace_packages(include=["alim_keras*"]),
        "alim_keras.flagfiles",
    ],
    package_dir={"alim_keras.flagfiles": "flags"},
)
