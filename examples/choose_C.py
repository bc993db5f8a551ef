"""Choose C by cross-validation with scikit-learn, then save the best model with its text features."""

from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from manyclass import OneVsRestSVC, load_model, save_model
from manyclass.data import TextFeatures, load_wordnet

FILE = "hypernyms.manyclass"


def main() -> None:
    wordnet = load_wordnet(min_members=50)

    # Rough fits are enough to rank values of C; the final fit, on all rows, uses a tighter tolerance.
    pipeline = make_pipeline(TextFeatures(min_df=2), OneVsRestSVC(tol=0.1))
    search = GridSearchCV(pipeline, {"onevsrestsvc__C": [0.1, 0.3, 1, 3, 10]}, cv=3, refit=False)
    search.fit(wordnet.texts_train, wordnet.labels_train)
    for chosen, accuracy in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        print(f"C = {chosen['onevsrestsvc__C']:<4}  accuracy {accuracy:.3f}")

    pipeline.set_params(**search.best_params_, onevsrestsvc__tol=0.01)
    pipeline.fit(wordnet.texts_train, wordnet.labels_train)
    print(pipeline[-1].certificate_.message)
    save_model(pipeline, FILE)  # including the vocabulary

    model = load_model(FILE)
    print(model.predict(["a red wine from Italy"])[0])


if __name__ == "__main__":
    main()
